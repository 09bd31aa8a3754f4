"""What is drawn beside tables: points and their scales, and how the terminal and files show them."""
