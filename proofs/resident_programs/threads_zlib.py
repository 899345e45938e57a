import random
import zlib
from concurrent.futures import ThreadPoolExecutor

blocks = [random.Random(i).randbytes(1_000_000) for i in range(24)]
with ThreadPoolExecutor(8) as pool:
    packed = list(pool.map(zlib.compress, blocks))
    again = list(pool.map(zlib.decompress, packed))
print(again == blocks, sum(map(len, packed)) > 0)
