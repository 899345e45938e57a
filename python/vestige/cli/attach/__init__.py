"""`vestige attach` and `vestige detach`: recording a process that runs already."""
