import sys

sys.path.insert(0, __file__.rpartition("/")[0] + "/modules")

import outer_package

outer_package.middle
