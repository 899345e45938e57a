import sys

sys.path.insert(0, __file__.rpartition("/")[0] + "/modules")


def start():
    import slow_to_import

    return slow_to_import


start()
