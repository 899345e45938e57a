"""`vestige device`: what vestige records of devices, checked on a machine that has one."""
