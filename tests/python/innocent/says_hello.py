print("hello", end="")
