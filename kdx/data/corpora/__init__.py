"""The corpora that kdx knows by name, a file each; `kdx.tasks.corpora` lists them."""
