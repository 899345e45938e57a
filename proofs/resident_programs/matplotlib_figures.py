import io

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

for number in range(3):
    figure, axes = pyplot.subplots(2, 2, figsize=(12, 9), dpi=150)
    for i, one in enumerate(axes.flat):
        one.plot([(j * (i + number + 1)) % 97 for j in range(3000)])
    out = io.BytesIO()
    figure.savefig(out)
    pyplot.close(figure)
print(len(out.getvalue()) > 10_000)
