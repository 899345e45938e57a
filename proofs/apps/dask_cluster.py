"""A cluster of dask on this machine, with two worker processes."""

import dask.array as da
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        array = da.arange(100_000, chunks=10_000)
        print(int((array * array).sum().compute()), client.submit(sum, range(100)).result())
