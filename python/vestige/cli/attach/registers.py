"""The description of the processor's registers for gdb: those of x86-64 without its extensions.

After a call, gdb restores every register that it knows, because the call may have changed it. gdb 13 thereby loses
zmm16 to zmm31 if the other extensions are not in use. memcpy() uses these registers, so a process that gdb stops inside
memcpy() would continue with zeros. Registers that gdb does not know stay unchanged; none of the called functions uses
them.
"""

from __future__ import annotations

FEATURES = (  # names, bits and type; gdb needs each in its place
    (
        "core",
        (
            ("rax rbx rcx rdx rsi rdi", 64, "int64"),
            ("rbp rsp", 64, "data_ptr"),
            ("r8 r9 r10 r11 r12 r13 r14 r15", 64, "int64"),
            ("rip", 64, "code_ptr"),
            ("eflags cs ss ds es fs gs", 32, "int32"),
            ("st0 st1 st2 st3 st4 st5 st6 st7", 80, "i387_ext"),
            ("fctrl fstat ftag fiseg fioff foseg fooff fop", 32, "int32"),
        ),
    ),
    ("sse", ((" ".join([f"xmm{number}" for number in range(16)]), 128, "uint128"), ("mxcsr", 32, "int32"))),
    ("linux", (("orig_rax", 64, "int64"),)),
    ("segments", (("fs_base gs_base", 64, "int64"),)),
)


def describe() -> str:
    """Returns the description for gdb's `set tdesc filename`."""
    features = "".join(
        f'<feature name="org.gnu.gdb.i386.{name}">{"".join(_register(*group) for group in groups)}</feature>'
        for name, groups in FEATURES
    )
    return f"<target><architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>{features}</target>\n"


def _register(names: str, bits: int, kind: str) -> str:
    return "".join([f'<reg name="{name}" bitsize="{bits}" type="{kind}"/>' for name in names.split()])
