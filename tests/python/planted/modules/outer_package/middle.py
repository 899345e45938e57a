from . import heavy as heavy
