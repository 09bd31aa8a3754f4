"""The keys of a grid that stand beside those of its cells, and what each is.

They are apart from what reads them, so that a key is explained without loading that.
"""

SUB_GRID = {
    "axes": "What varies, and multiplies: a factor with a list or a range of its values, or a name of its own with a "
    "mapping of named choices, each of which sets several keys.",
    "zip": "Factors that vary together: the first value of each, then the second, and so on.",
    "approaches": "Named bundles of settings, which make one axis; a bundle may have axes of its own.",
    "ablate": "Single changes of what the grid sets: each makes a cell beside the unchanged baseline.",
    "exclude": "Combinations to leave out, each by a condition: factors with words, all of which must agree; a list is "
    "any of its words, and what stands under `not` must not hold.",
    "include": "Combinations beside the product: the choice on each named axis, and whatever else they set.",
    "overrides": "What is set in every combination that fulfils a condition.",
    "preset": "A shipped set of settings that lies under all that the grid sets.",
}
"""The keys that a sub-grid may have beside its settings, with what each is."""
GRID = {
    "name": "What the sweep is called; the file's name unless said otherwise.",
    "description": "What the grid is for.",
    "extends": "A grid that lies under this one, by its path or as a shipped one: mappings merge key by key, anything "
    "else replaces, and null takes an entry out.",
    "seeds": "How many seeds each cell has, or which; seed 0 alone unless said otherwise. "
    "{min: 3, max: 12, until: decided} adds seeds while the comparison with the baseline is open, "
    "{min: 3, max: 12, until: {bleu: 0.3}} while the interval of a mean is wider. "
    "{initialisation: 3, order: 3, dropout: 3} crosses seeds of the sources of randomness; one that is left out has "
    "seed 0.",
    "first": "Which cells run first, by conditions as `exclude` has them: cells that fulfil the first condition run "
    "before those of the second, and these before all others; within one, a seed of every cell before the next seed.",
    "tune": "Parameters that are searched in each cell, on validation alone and with the same budget; the best trial's "
    "cell is then trained with fresh seeds.",
    "tables": "The tables of the report; one over all axes unless said otherwise.",
    "evaluations": "Further readings of each run that completes, by name; a list of values makes one for each.",
    "tasks": "A sub-grid for each of several tasks, laid over what all of them share.",
    "grids": "Several sub-grids by names of their own, laid over what all of them share.",
    **SUB_GRID,
}
"""Those of a whole grid."""
