"""A gRPC server and its client in one process, without generated code."""

from concurrent.futures import ThreadPoolExecutor

import grpc


class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method == "/echo.Echo/Upper":
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request.upper())
        return None


server = grpc.server(ThreadPoolExecutor(4), handlers=(Echo(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    upper = channel.unary_unary("/echo.Echo/Upper")
    print([upper(f"word {number}".encode()) for number in range(50)][-1])
    futures = [upper.future(b"x" * number) for number in range(50)]
    print(sum(len(future.result()) for future in futures))
server.stop(None).wait()
