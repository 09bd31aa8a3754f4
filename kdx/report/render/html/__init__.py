"""The tables of a sweep, its learning curves and its runs as one page that needs nothing else.

The plots are Vega-Lite, drawn by vl-convert into SVG when the page is made: they need no script, so they print, their
labels are text, their points are links that a keyboard reaches, and their colours are the page's own, light and dark. A
small script sorts tables, lays chosen curves over each other and opens what a link leads to. The page forbids itself to
load anything.
"""
