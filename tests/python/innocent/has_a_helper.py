import threading

done = threading.Event()
helper = threading.Thread(target=done.wait)
helper.start()
total = 0
for i in range(3_000_000):
    total += i * i
done.set()
helper.join()
