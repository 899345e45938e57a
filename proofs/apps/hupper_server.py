"""hupper, which starts the program again from sys.orig_argv when a file changes: hupper_server.py PORT."""

import sys

import hupper
import plain_server

if __name__ == "__main__":
    hupper.start_reloader("__main__.main")


def main():
    plain_server.main(sys.argv[1])


if __name__ == "__main__":
    main()
