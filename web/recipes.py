"""Recipes: files and lines by which other programs send screenshots here, filled with the service's address
and a token that may only upload.

Each recipe is a function of `Target`, so that a test can run or check what it makes. The formats are those of
the programs: HTTP Shortcuts 3.x (Android; its import accepts the JSON of its export), ShareX (`.sxcu`), and
shells. Apple signs shortcuts, so for iOS there are steps, and the actions with their values, which the page
draws as the app shows them.

A service with a certificate of its own is trusted by nobody yet. HTTP Shortcuts gets the certificate's
fingerprint, and connects to no other; for the rest, the first step is to install the CA.
"""

import json
import shlex
import uuid
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "http-shortcuts", "sharex", "ios", "macos", "flameshot", "spectacle", "grim", "powershell", "curl"
]
KINDS: tuple[str, ...] = get_args(Kind)

UPLOAD = "/api/photos/upload"
TIMEOUT = 60_000  # milliseconds that a phone waits for the upload of several pictures
# The ids in an import must be UUIDs, and the same import replaces its earlier version.
IDS = uuid.UUID("6f0f6a52-1d0a-4f5c-9a7e-2f6f2b1c7a10")


class Target(NamedTuple):
    """Where a program sends to: the address without a trailing slash, and a token of the scope `upload`."""

    address: str
    token: str
    fingerprint: str = ""  # SHA-256 of the service's own certificate, in hexadecimal digits
    renewed: str = ""  # the day on which that certificate ends

    @property
    def authorization(self) -> str:
        return f"Bearer {self.token}"


class Value(NamedTuple):
    """A field of an action. `typed`: a person types or pastes it; the others are chosen from a list."""

    name: str
    value: str
    typed: bool = False


class Action(NamedTuple):
    """An action of a program for building shortcuts, filled in."""

    title: str
    values: list[Value]


class Recipe(NamedTuple):
    """What a person saves or runs. `filename` is empty for a line of a shell, `content` for mere steps."""

    name: str  # of the program
    filename: str
    content: str
    steps: list[str]
    actions: tuple[Action, ...] = ()  # of iOS Shortcuts, in their order


def made(kind: Kind, target: Target) -> Recipe:
    """The recipe for a program."""
    recipe = _RECIPES[kind](target)
    if target.fingerprint and kind != "http-shortcuts":
        trust = (
            f"This device must trust the service first: open {target.address}/ca on it, and follow the steps."
        )
        return recipe._replace(steps=[trust, *recipe.steps])
    return recipe


def _http_shortcuts(target: Target) -> Recipe:
    shortcut = {
        "id": _id("shortcut"),
        "name": "Snaplore",
        "description": "Save screenshots to Snaplore",
        "iconName": "flat_color_gallery",
        "executionType": "app",
        "method": "POST",
        "url": f"{target.address}{UPLOAD}-batch",
        "timeout": TIMEOUT,
        "retryPolicy": "wait_for_internet",
        "authentication": "bearer",
        "authToken": target.token,
        "requestBodyType": "form_data",
        "parameters": [
            {"id": _id("device"), "key": "device_id", "value": "android", "type": "string"},
            {
                "id": _id("files"),
                "key": "files",
                "type": "file",
                "fileUploadOptions": {"fileUploadType": "file_picker_multi"},
            },
        ],
        "responseHandling": {
            "uiType": "toast",
            "successOutput": "message",
            "successMessage": "Saved to Snaplore",
            "failureOutput": "simple",
        },
    }
    steps = [
        "Install HTTP Shortcuts (F-Droid or Google Play) and save this file on the phone.",
        "In the app, open the menu, then Import / Export, then Import from file.",
        "In any app, share screenshots and choose “Send to…” of HTTP Shortcuts, then Snaplore.",
    ]
    if target.fingerprint:
        # With a fingerprint, the app compares the server's certificate alone, not those that issued it.
        shortcut["certificateFingerprint"] = target.fingerprint
        steps.append(
            "The shortcut connects to this service’s certificate and to no other. The service renews it "
            f"before {target.renewed}: when the shortcut then stops working, import a new file."
        )
    category = {"id": _id("category"), "name": "Snaplore", "shortcuts": [shortcut]}
    return Recipe(
        "HTTP Shortcuts",
        "snaplore-http-shortcuts.json",
        _pretty({"version": 71, "categories": [category]}),
        steps,
    )


def _sharex(target: Target) -> Recipe:
    uploader = {
        "Version": "15.0.0",
        "Name": "Snaplore",
        "DestinationType": "ImageUploader",
        "RequestMethod": "POST",
        "RequestURL": f"{target.address}{UPLOAD}",
        "Headers": {"Authorization": target.authorization},
        "Body": "MultipartFormData",
        "Arguments": {"device_id": "windows", "source_type": "screenshot"},
        "FileFormName": "file",
        "URL": f"{target.address}/#/photo/{{json:id}}",
        "ErrorMessage": "{json:detail}",
    }
    return Recipe(
        "ShareX",
        "snaplore.sxcu",
        _pretty(uploader),
        [
            "Save the file and double-click it: ShareX imports it as its image uploader.",
            "In “After capture tasks”, switch on “Upload image to host”.",
        ],
    )


def _ios(target: Target) -> Recipe:
    return Recipe(
        "iOS Shortcuts",
        "",
        "",
        [
            "In the app Shortcuts, make a new shortcut. In its details, switch on “Show in Share Sheet”, "
            "and receive Images only.",
            "Add “Repeat with Each” with Shortcut Input, and inside it “Get Contents of URL”.",
            "Fill it in as below. Paste what has a copy button; choose the rest.",
            "After a screenshot, tap its preview, then Share, then the shortcut. iOS lets no shortcut start "
            "by itself when a screenshot is taken.",
        ],
        (
            Action(
                "Details",
                [
                    Value("Name", "Snaplore", typed=True),
                    Value("Show in Share Sheet", "On"),
                    Value("Receive", "Images"),
                ],
            ),
            Action("Repeat with Each", [Value("Items", "Shortcut Input")]),
            Action(
                "Get Contents of URL",
                [
                    Value("URL", f"{target.address}{UPLOAD}", typed=True),
                    Value("Method", "POST"),
                    Value("Headers: Key", "Authorization", typed=True),
                    Value("Headers: Text", target.authorization, typed=True),
                    Value("Request Body", "Form"),
                    Value("Form, File: Key", "file", typed=True),
                    Value("Form, File: value", "Repeat Item"),
                    Value("Form, Text: Key", "device_id", typed=True),
                    Value("Form, Text: value", "iphone", typed=True),
                ],
            ),
        ),
    )


def _macos(target: Target) -> Recipe:
    send = _curl(target, '"file=@$file"', "mac")
    script = f'for file in "$@"; do\n  {send}\ndone\n'
    return Recipe(
        "macOS folder action",
        "snaplore.sh",
        script,
        [
            "In Automator, make a new Folder Action for the folder of your screenshots.",
            "Add “Run Shell Script”, with the shell /bin/zsh and the input “as arguments”, and paste this.",
        ],
    )


def _flameshot(target: Target) -> Recipe:
    line = f"flameshot gui --raw | {_curl(target, _STANDARD_INPUT, 'linux')}"
    return Recipe("Flameshot", "", line, [_SHORTCUT])


def _spectacle(target: Target) -> Recipe:
    send = _curl(target, '"file=@$shot"', "linux")
    line = f'shot=$(mktemp --suffix=.png) && spectacle -b -n -r -o "$shot" && {send}; rm -f "$shot"'
    return Recipe("Spectacle", "", line, [_SHORTCUT])


def _grim(target: Target) -> Recipe:
    line = f'grim -g "$(slurp)" - | {_curl(target, _STANDARD_INPUT, "linux")}'
    return Recipe("grim and slurp", "", line, [_SHORTCUT])


def _powershell(target: Target) -> Recipe:
    lines = (
        # OneDrive may have moved the folder.
        "$folder = Join-Path ([Environment]::GetFolderPath('MyPictures')) 'Screenshots'",
        "$shot = Get-ChildItem $folder -File | Sort-Object LastWriteTime | Select-Object -Last 1",
        f"curl.exe --fail --silent --show-error --header {_single(f'Authorization: {target.authorization}')} "
        f'--form "file=@$($shot.FullName)" --form device_id=windows {_single(f"{target.address}{UPLOAD}")}',
    )
    return Recipe(
        "PowerShell",
        "snaplore.ps1",
        "\n".join(lines) + "\n",
        ["It sends the latest screenshot of the folder."],
    )


def _curl_line(target: Target) -> Recipe:
    return Recipe("curl", "", _curl(target, "file=@screenshot.png", "curl"), [])


_RECIPES: dict[Kind, Callable[[Target], Recipe]] = {
    "http-shortcuts": _http_shortcuts,
    "sharex": _sharex,
    "ios": _ios,
    "macos": _macos,
    "flameshot": _flameshot,
    "spectacle": _spectacle,
    "grim": _grim,
    "powershell": _powershell,
    "curl": _curl_line,
}
_STANDARD_INPUT = "'file=@-;filename=screenshot.png'"
_SHORTCUT = "Bind the line to a key in the settings of your desktop, as `sh -c '…'`."


def _curl(target: Target, form: str, device: str) -> str:
    """A call of curl for a POSIX shell. `form` is quoted already where it needs to be."""
    header = shlex.quote(f"Authorization: {target.authorization}")
    address = shlex.quote(f"{target.address}{UPLOAD}")
    options = f"--fail --silent --show-error --header {header} --form {form} --form device_id={device}"
    return f"curl {options} {address}"


def _single(text: str) -> str:
    """A text in PowerShell's single quotes."""
    return "'" + text.replace("'", "''") + "'"


def _id(name: str) -> str:
    return str(uuid.uuid5(IDS, name))


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
