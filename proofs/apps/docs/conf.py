project = "Example"
extensions = ["sphinx.ext.autodoc"]
