import subprocess


def build():
    subprocess.run(["sleep", "0.3"], check=True)


build()
