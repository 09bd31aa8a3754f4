"""The tables of a sweep, its learning curves and its runs as one self-contained page.

The plots are Vega-Lite, which vl-convert draws into SVG when the page is made. They need no script, so they print,
their labels are text, the keyboard reaches their points, and they use the page's light and dark colours. A small script
sorts tables and opens the target of a link. The page's policy forbids it to load anything.
"""
