"""A client of `recto exec`. Run it: python3 examples/exec_client.py"""

import json
import subprocess


class RectoError(Exception):
    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]


class Recto:
    def __init__(self, store):
        command = ["recto", "exec", "--store", store]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")

    def request(self, fields):
        self.process.stdin.write(json.dumps(fields) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise EOFError("recto exec has ended")
        response = json.loads(line)
        if "error" in response:
            raise RectoError(response["error"])
        return response

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


if __name__ == "__main__":
    recto = Recto("memory:")
    recto.request({"create": "support", "messages": [{"role": "user", "content": "Hello"}]})
    answer = {"role": "assistant", "content": "Hello! How can I help?"}
    append = {"operation": "APPEND", "messages": [answer]}
    outcome = recto.request({"conversation": "support", "op": append, "expectedVersion": 0})
    print("version", outcome["version"], "has", outcome["stats"]["currentBatchMessages"], "messages")
    try:
        recto.request({"conversation": "support", "op": append, "expectedVersion": 0})
    except RectoError as error:
        print("refused:", error.code)
    recto.close()
