from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

x, y = make_classification(20_000, 30, random_state=1)
forest = RandomForestClassifier(30, n_jobs=2, random_state=1).fit(x, y)
print(forest.score(x, y))
