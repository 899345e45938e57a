import sys

sys.path.insert(0, __file__.rpartition("/")[0] + "/modules")
import small_module

total = small_module.VALUE
for i in range(4_000_000):
    total += i
