"""Tells the library that a file belongs to by the file's path alone."""

from __future__ import annotations

PACKAGES = ("site-packages", "dist-packages")


def library_of(file: str, stdlib: str = "") -> str:
    """Returns the name of the library that a file belongs to; "" if it belongs to none."""
    if file.startswith("<frozen "):
        return file[8:].rstrip(">").partition(".")[0]
    parts = file.split("/")
    for at in range(len(parts) - 1, 0, -1):
        if parts[at - 1] in PACKAGES:
            inside = parts[at:]
            if inside[0].endswith((".egg", ".zip", ".whl", ".pyz")) and len(inside) > 1:
                inside = inside[1:]
            return _stem(inside[0])
    if stdlib and file.startswith(stdlib + "/"):
        return _stem(file[len(stdlib) + 1 :].partition("/")[0])
    for at in range(len(parts) - 1):
        if parts[at] in ("lib", "lib64") and _is_python(parts[at + 1]) and len(parts) > at + 2:
            inside = parts[at + 2 :]
            return _stem(inside[1] if inside[0] == "lib-dynload" and len(inside) > 1 else inside[0])
    return ""


def _is_python(folder: str) -> bool:
    """Returns whether the folder is named like python3.12, python3.13t or python312.zip."""
    version = folder.removeprefix("python").removesuffix(".zip").rstrip("td")
    return folder.startswith("python3") and version.replace(".", "").isdigit() and ("." in version or len(version) > 1)


def _stem(name: str) -> str:
    return name[:-3] if name.endswith(".py") else name.partition(".")[0] or name
