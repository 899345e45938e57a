"""scikit-learn's search over parameters, in processes of loky."""

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

if __name__ == "__main__":
    x, y = make_classification(400, 10, random_state=0)
    search = GridSearchCV(
        RandomForestClassifier(random_state=0), {"n_estimators": [5, 10], "max_depth": [2, 4]}, n_jobs=2
    )
    search.fit(x, y)
    print(search.best_params_, round(search.best_score_, 6))
