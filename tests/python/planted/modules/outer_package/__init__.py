from . import middle as middle
