#!/usr/bin/env python3
"""Adds to a wheel what auditwheel leaves out: the licences of the libraries inside, and a list of them (an SBOM).

    python finish.py [--owners FILE] [--adapters FOLDER] WHEEL FOLDER

The wheel goes to FOLDER, whole or not at all. Of the observers of torch's operators that adapters.py built ahead of
time, those built from the wheel's own sources go into it. The package of each library comes from the system's package
manager or from FILE, which has a line for each library: its name, the package as a purl without "pkg:", and the file
with its licence. The list is CycloneDX, in dist-info/sboms, as PEP 770 has it. A wheel of more than 3 MB, with a
library that no package is known for, or without a licence for one, is refused; so is one that lacks the observers it
was to have.
"""

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path

from adapters import HOME, digest_of

SIZE_MAX = 3_000_000
LIBRARY = re.compile(r"^vestige\.libs/(lib.+)-[0-9a-f]{8}(\.so[.0-9]*)$")
FOLDERS = ("/usr/lib64", "/lib64", "/usr/lib", "/lib")


class NotKnownError(Exception):
    pass


# ---- which package a library is of ----------------------------------------------


def read_owners(path):
    """Returns {name of a library: (purl, file of its licence)}."""
    with open(path, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return {name: (f"pkg:{purl}", licence) for name, purl, licence in rows}


def ask(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def owner_by_rpm(path):
    """Returns (purl, file of its licence) in the containers of manylinux."""
    form = "%{NAME} %{VERSION}-%{RELEASE} %{ARCH}\n"
    found = ask("rpm", "--query", "--queryformat", form, "--file", path).split()
    if len(found) != 3:
        return None
    licences = ask("rpm", "--query", "--licensefiles", "--file", path).splitlines()
    return f"pkg:rpm/almalinux/{found[0]}@{found[1]}?arch={found[2]}", licences[0] if licences else None


def owner_by_apk(path):
    """Returns (purl, None) in the containers of musllinux: Alpine's packages have no licence files."""
    found = re.search(r" owned by (.+)-(\d[^-]*-r\d+)$", ask("apk", "info", "--who-owns", path))
    return found and (f"pkg:apk/alpine/{found[1]}@{found[2]}", None)


def owner_of(name, owners):
    if owners is not None:
        if name not in owners:
            raise NotKnownError(f"no package is known that {name} is of")
        return owners[name]
    for folder in FOLDERS:
        path = Path(folder, name)
        if not path.exists():
            continue
        for tool, find in (("rpm", owner_by_rpm), ("apk", owner_by_apk)):
            found = find(os.path.realpath(path)) if shutil.which(tool) else None
            if found:
                return found
    raise NotKnownError(f"no package is known that {name} is of")


# ---- the list -------------------------------------------------------------------


def component(name, purl, data):
    package, version = re.fullmatch(r"pkg:(?:[^/]+/)+([^@]+)@([^?]+).*", purl).groups()
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}],
        "properties": [{"name": "vestige:file", "value": name}],
    }


def sbom(project, version, libraries):
    """Returns the SBOM in CycloneDX 1.6; equal wheels give equal SBOMs."""
    own = f"pkg:pypi/{project}@{version}"
    # Two components of one package become one, with the hashes of both.
    parts = {}
    for part in (component(*library) for library in libraries):
        known = parts.setdefault(part["bom-ref"], part)
        if known is not part:
            known["hashes"] += part["hashes"]
            known["properties"] += part["properties"]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project,
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": list(parts.values()),
        "dependencies": [{"ref": own, "dependsOn": sorted(parts)}, *({"ref": ref} for ref in sorted(parts))],
    }
    text = json.dumps(document, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, own + text).urn
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


# ---- the wheel ------------------------------------------------------------------


def record_row(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", str(len(data))


def added_files(wheel, info, owners):
    """Returns {name in the wheel: bytes} of the files to add."""
    added, libraries = {}, []
    for name in sorted(wheel.namelist()):
        found = LIBRARY.match(name)
        if not found:
            if name.startswith("vestige.libs/") and not name.endswith("/"):
                raise NotKnownError(f"{name} is not named as auditwheel names libraries")
            continue
        purl, licence = owner_of(found[1] + found[2], owners)
        libraries.append((name, purl, wheel.read(name)))
        package = re.search(r"([^/@]+)@", purl)[1]
        if licence is not None:
            added[f"{info}/licenses/bundled/{package}.txt"] = Path(licence).read_bytes()
        elif not purl.startswith("pkg:apk/"):
            raise NotKnownError(f"{package} comes without a licence")
    project, version = info.removesuffix(".dist-info").split("-")
    added[f"{info}/sboms/{project}.cdx.json"] = sbom(project, version, libraries).encode()
    return added


def prebuilt(wheel, folder):
    """Returns {name in the wheel: bytes} of the observers of torch's operators."""
    names = sorted(folder.glob(f"operators-*-{digest_of(wheel)}-*.so"))
    if not names:
        raise NotKnownError(f"nothing in {folder} was built from its sources")
    return {f"{HOME}prebuilt/{path.name}": path.read_bytes() for path in names}


def write(source, target, owners, adapters):
    with zipfile.ZipFile(source) as wheel, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        info = next(name.split("/")[0] for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
        added = added_files(wheel, info, owners) | (prebuilt(wheel, adapters) if adapters else {})
        rows = list(csv.reader(io.StringIO(wheel.read(f"{info}/RECORD").decode())))
        rows = [row for row in rows if row and row[0] not in added and row[0] != f"{info}/RECORD"]
        rows += [record_row(name, data) for name, data in added.items()] + [(f"{info}/RECORD", "", "")]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        for entry in wheel.infolist():
            if entry.filename != f"{info}/RECORD" and entry.filename not in added:
                data = wheel.read(entry)
                entry.compress_type = zipfile.ZIP_DEFLATED
                new.writestr(entry, data)
        for name, data in {**added, f"{info}/RECORD": text.getvalue().encode()}.items():
            entry = zipfile.ZipInfo(name, wheel.getinfo(f"{info}/RECORD").date_time)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--owners", metavar="FILE")
    parser.add_argument("--adapters", metavar="FOLDER", type=Path)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    final = options.folder / options.wheel.name
    partial = options.wheel.with_name("finished")
    try:
        write(options.wheel, partial, read_owners(options.owners) if options.owners else None, options.adapters)
    except NotKnownError as error:
        sys.exit(f"{options.wheel.name}: {error}")
    size = partial.stat().st_size
    if size > SIZE_MAX:
        sys.exit(f"{options.wheel.name} has {size:,} bytes, more than the {SIZE_MAX:,} that we allow")
    os.replace(partial, final)
    print(f"{final} ({size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
