"""Plots of matplotlib, drawn without a screen."""

import hashlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

figure, axes = plt.subplots(2, 2)
x = np.linspace(0, 10, 200)
for number, ax in enumerate(axes.flat):
    ax.plot(x, np.sin(x * (number + 1)), label=f"{number}")
    ax.hist(np.cos(x), bins=20)
    ax.legend()
figure.savefig("plot.png", metadata={"Software": None})
print(hashlib.sha256(open("plot.png", "rb").read()).hexdigest())
