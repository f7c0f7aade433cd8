"""Error → HTTP status. Every error is JSON: `{"error", "code", "hint"}`."""

from __future__ import annotations

from starlette.responses import JSONResponse

from sm.core.errors import Refused

STATUS = {
    "unauthorized": 401,
    "forbidden": 403,
    "foreign_host": 403,
    "foreign_origin": 403,
    "not_self": 403,
    "not_found": 404,
    "no_route": 404,
    "file_not_found": 404,
    "bad_method": 405,
    "too_large": 413,
    "bad_type": 415,
    "bad_payload": 400,
    "bad_request": 400,
    "bad_id": 400,
    "bad_name": 400,
    "client_gone": 503,
    "launch_failed": 502,
    "internal": 500,
}
"""Where nothing is listed, the request was understood and refused: 409."""


def error_response(refused: Refused) -> JSONResponse:
    body = {"error": refused.message, "code": refused.code, "hint": refused.hint}
    return JSONResponse(body, STATUS.get(refused.code, 409))
