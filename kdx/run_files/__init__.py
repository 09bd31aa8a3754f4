"""The files of runs: where they lie (`files`), whose their folder is (`folder_ownership`), what is kept of them
(`retention`), what is wrong with them (`repair`), and a run's model in Python (`load_run`)."""
