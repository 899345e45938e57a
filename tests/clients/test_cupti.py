"""Compares our declarations of CUPTI's records with NVIDIA's, and our reading of buffers with the real libcupti's, for
the version that tests/clients/requirements.txt names. proofs/cupti.py compares all versions.
"""

import shutil
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "cupti"), str(TESTS / "python")]
import headers

from test_cupti import by_category, library, record  # noqa: F401, the fixture

nvidia = pytest.importorskip("nvidia.cu13", reason="nvidia-cuda-cupti is not installed")
if shutil.which("cc") is None:
    pytest.skip("no compiler is here", allow_module_level=True)
FOLDER = Path(next(iter(nvidia.__path__)))
REAL = FOLDER / "lib" / "libcupti.so.13"


def test_records_are_declared_as_in_nvidias_headers(tmp_path):
    different, compared, version, sizes = headers.compare(FOLDER / "include", tmp_path)
    assert different == []
    assert compared > 200 and version == 130001
    assert headers.measure(REAL, sizes) == sizes


def test_a_declaration_that_differs_is_found(tmp_path, monkeypatch):
    """An additional member of four bytes before the kernel's name shifts all later members."""
    here = tmp_path / "tests" / "cupti"
    shutil.copytree(headers.HERE, here)
    shutil.copytree(TESTS.parent / "adapters" / "cupti", tmp_path / "adapters" / "cupti")
    records = tmp_path / "adapters" / "cupti" / "records.h"
    records.write_text(records.read_text().replace("    const char *name;\n", "    const char *first, *name;\n", 1))
    monkeypatch.setattr(headers, "HERE", here)
    different = headers.compare(FOLDER / "include", tmp_path)[0]
    assert any(line.startswith("cupti_kernel.name begins: ours 112, theirs 104") for line in different)


def test_the_real_library_walks_buffers_to_the_same_recording(library, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "stub").mkdir()
    real = by_category(record(library, tmp_path / "real" / "t.vst", 130001, REAL))
    ours = by_category(record(library, tmp_path / "stub" / "t.vst", 130001))
    assert real.keys() == ours.keys() >= {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_sync", "overhead"}
    for category in real.keys() - {"python_function"}:
        for one, other in zip(real[category], ours[category], strict=True):
            one["args"].pop("memory bandwidth (GB/s)", None), other["args"].pop("memory bandwidth (GB/s)", None)
            assert (one["name"], one["args"]) == (other["name"], other["args"])
