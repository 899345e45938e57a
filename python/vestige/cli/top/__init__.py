"""`vestige top`: what a program that is being recorded does now. `target.py` finds its trace and asks the system about
its process, `window.py` adds up the last seconds, `picture.py` lays them out, `terminal.py` draws and reads keys.
"""
