"""From a grid file to its plan: read (`source`, `load`), multiply out (`expand`), and give each cell its identity."""
