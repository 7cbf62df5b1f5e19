"""Git over HTTPS with a password: `git http-backend` behind TLS, on a port of the loopback.

Arguments: folder of repositories, certificate, key, port (0: any), user:password, file of faults. Prints the port.
Without a certificate (an empty argument), it speaks http; without user:password, everybody may read and push.
The file of faults, read at each request, may hold: `cut N` (close after N bytes of an answer's body), `hang`
(never answer), `status N` (answer with that status), `redirect URL`, `cut-push N` (like `cut`, for pushes only:
they are done, and nobody hears of it). What is asked of the protocol is written to `asked` beside it, a line each.
"""

import base64
import gzip
import http.server
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

ROOT, CERTIFICATE, KEY, PORT, LOGIN, FAULTS = sys.argv[1:7]
EXPECTED = "Basic " + base64.b64encode(LOGIN.encode()).decode()


def fault():
    try:
        with open(FAULTS) as file:
            return file.read().split()
    except FileNotFoundError:
        return []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = b""
        while True:
            size = int(self.rfile.readline().strip() or b"0", 16)
            if size == 0:
                self.rfile.readline()
                return parts
            parts += self.rfile.read(size)
            self.rfile.readline()

    def note(self, body):
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        words = [word for word in body.split() if word.startswith((b"refs/", b"want")) or b"command=" in word]
        if self.command == "POST" and "upload-pack" in self.path:
            with open(os.path.join(os.path.dirname(FAULTS), "asked"), "ab") as file:
                file.write(b" ".join(words) + b"\n")

    def plain(self, status, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self):
        body = self.body()
        now = fault()
        self.note(body)
        if now[:1] == ["hang"]:
            time.sleep(600)
        if now[:1] == ["status"]:
            return self.plain(int(now[1]))
        if now[:1] == ["redirect"]:
            return self.plain(301, ("Location", now[1] + self.path))
        if LOGIN and self.headers.get("Authorization") != EXPECTED:
            return self.plain(401, ("WWW-Authenticate", 'Basic realm="git"'))
        url = urllib.parse.urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_PROJECT_ROOT": ROOT,
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "git",
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": urllib.parse.unquote(url.path),
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        ran = subprocess.run(["git", "http-backend"], input=body, env=environment, stdout=subprocess.PIPE)
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((value for name, value in headers if name == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        # What a repository says of itself arrives; it is packs and results that are cut.
        cut = ["cut"] if "upload-pack" in self.path else ["cut", "cut-push"]
        if now and now[0] in cut and self.command == "POST":
            self.wfile.write(content[: int(now[1])])
            self.wfile.flush()
            self.close_connection = True
            return None
        self.wfile.write(content)
        return None

    do_GET = do_POST = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


server = Server(("127.0.0.1", int(PORT)), Handler)
if CERTIFICATE:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    # Each connection shakes hands on its own thread.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
