"""The corpora that kdx knows by name, one file each; `kdx.tasks.corpora` lists them."""
