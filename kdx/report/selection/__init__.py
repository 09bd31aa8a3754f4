"""Which run stands for a cell, and what the cell comes to."""
