import gc


def churn(kept):
    for _ in range(12):
        gc.collect()


churn([[i] for i in range(200_000)])
