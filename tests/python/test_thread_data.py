"""Thread-local data of the extension. The data come from a small reserve that the C library has for all libraries
loaded after the program began; torch's libgomp cannot be loaded if the reserve is used up.
"""

import struct
import sys

import pytest

import vestige._core

MOST = 1200  # bytes; with 1,592, importing torch after vestige failed
TLS = 7  # the kind of a program header


@pytest.mark.skipif(sys.maxsize < 1 << 32, reason="reads ELF of 64 bits")
def test_threads_data_leaves_room_for_other_libraries():
    with open(vestige._core.__file__, "rb") as file:
        head = file.read(64)
        assert head[:4] == b"\x7fELF"
        (at,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(at)
        headers = [struct.unpack("<IIQQQQQQ", file.read(size)) for _ in range(count)]
    assert 0 < sum(memory for kind, _, _, _, _, _, memory, _ in headers if kind == TLS) <= MOST
