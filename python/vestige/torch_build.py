"""`python -m vestige.torch_build` builds the observer of torch's operators ahead of time; see vestige.torch.build."""

import sys

from .torch.build import main

if __name__ == "__main__":
    sys.exit(main())
