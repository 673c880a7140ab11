"""The test client of the service, and a check of error answers."""

import io
import json

from tests.support import contract


class Client:
    """Flask's test client with the key and the most frequent calls. It checks every answer against the
    contract.
    """

    def __init__(self, app):
        self.app = app
        self.open = app.test_client()
        self.headers = {"Authorization": f"Bearer {app.api_key}"} if app.api_key else {}
        contract.document(app)  # before a test replaces a route

    def get(self, path, **options):
        return self._call(self.open.get, path, options)

    def post(self, path, **options):
        return self._call(self.open.post, path, options)

    def put(self, path, **options):
        return self._call(self.open.put, path, options)

    def patch(self, path, **options):
        return self._call(self.open.patch, path, options)

    def delete(self, path, **options):
        return self._call(self.open.delete, path, options)

    def upload(self, picture, filename="screenshot.png", **fields):
        return self.post("/api/photos/upload", data={"file": (io.BytesIO(picture), filename), **fields})

    def _call(self, method, path, options):
        headers = {**self.headers, **options.pop("headers", {})}
        answer = method(path, headers=headers, **options)
        answer.get_data()
        contract.hold(self.app, answer)
        answer.request.environ[
            "wsgi.input"
        ].close()  # a temporary file of the test client's, when the body was large
        answer.close()
        return answer


def detail(response, status):
    """The sentence of an error answer, after checking its status and the form of its body."""
    assert response.status_code == status, response.get_data(as_text=True)
    body = json.loads(response.get_data())
    assert set(body) == {"detail"}
    assert isinstance(body["detail"], str)
    assert body["detail"]
    return body["detail"]
