"""The image's files: compose.yaml, and those for app catalogues, against what each catalogue asks for.

Each schema was written down from the source that it names, so the tests need no network. It has the fields
that the catalogue requires and those that Snaplore's files have; any other field fails.
"""

import json
import re
import shutil
import subprocess

import jsonschema_rs
import pytest
import yaml

from settings import ROOT, VERSION

CATALOGUES = ROOT / "deploy" / "catalogues"
IMAGE = f"registry.example/snaplore:{VERSION}"


def shape(required, optional=None):
    """The schema of an object with these fields and no others."""
    fields = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def text(longest=5_000, pattern=""):
    return {"type": "string", "minLength": 1, "maxLength": longest, "pattern": pattern}


def one_of(*values):
    return {"enum": list(values)}


def some(schema):
    return {"type": "array", "items": schema, "minItems": 1}


PORT = {"type": "integer", "minimum": 1, "maximum": 65_535}
YES_OR_NO = {"type": "boolean"}
ADDRESS = text(pattern="^https://")
LOCALISED = {
    "type": "object",
    "required": ["en_US"],
    "propertyNames": {"pattern": "^[a-z]{2}_[A-Z]{2}$"},
    "additionalProperties": text(),
}

# getumbrel/umbrel, packages/umbreld/source/modules/apps/schema.ts, as sharknoon/umbrel-cli
# (src/schemas/umbrel-app.yml.schema.ts) checks it.
UMBREL = shape(
    {
        "manifestVersion": one_of(1, 1.1, 1.2),
        "id": text(pattern="^[a-z][a-z-]*$"),
        "name": text(50),
        "tagline": text(100, "[^.]$"),
        "category": one_of(
            *("files", "bitcoin", "media", "networking", "social", "automation", "finance", "ai"),
            *("developer", "crypto"),
        ),
        "version": text(),
        "port": PORT,
        "description": text(),
        "developer": text(50),
        "website": ADDRESS,
        "submitter": text(50),
        "submission": ADDRESS,
        "support": ADDRESS,
        "gallery": {"type": "array", "items": text()},
        "dependencies": {"type": "array", "items": text()},
        "path": {"type": "string"},
    },
    {
        "repo": {"type": "string"},
        "releaseNotes": {"type": "string"},
        "defaultUsername": {"type": "string"},
        "defaultPassword": {"type": "string"},
        "deterministicPassword": YES_OR_NO,
    },
)

# IceWhaleTech/CasaOS-AppStore, docs/specs/compose-and-x-casaos.md.
CASAOS = shape(
    {
        "id": text(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_-]+)+$"),
        "main": text(),
        "index": text(pattern="^/"),
        "port_map": text(pattern="^[0-9]+$"),
        "icon": ADDRESS,
        "title": LOCALISED,
        "category": one_of(
            *("Media", "Productivity", "Home", "Networking", "AI", "Finance", "Social", "Developer"), "Others"
        ),
        "version": text(pattern=r"^\d+\.\d+\.\d+$"),
    },
    {
        "scheme": one_of("http", "https"),
        "tagline": LOCALISED,
        "description": LOCALISED,
        "tips": {"type": "object", "additionalProperties": LOCALISED},
        "author": text(),
        "developer": text(),
        "architectures": some(one_of("amd64", "arm64")),
    },
)

# runtipi/runtipi-appstore, apps/app-info-schema.json.
RUNTIPI = shape(
    {
        "id": text(),
        "available": YES_OR_NO,
        "name": text(),
        "tipi_version": {"type": "number"},
        "short_desc": text(),
        "author": text(),
        "source": text(),
    },
    {
        "$schema": text(),
        "port": PORT,
        "description": text(),
        "version": text(),
        "categories": some(
            one_of(
                *("network", "media", "development", "automation", "social", "utilities", "photography"),
                *("security", "featured", "books", "data", "music", "finance", "gaming", "ai"),
            )
        ),
        "created_at": {"type": "integer"},
        "updated_at": {"type": "integer"},
        "exposable": YES_OR_NO,
        "dynamic_config": YES_OR_NO,
        "supported_architectures": some(one_of("arm64", "amd64")),
        "form_fields": some(
            shape(
                {"type": one_of("random"), "label": text(), "env_variable": text(pattern="^[A-Z_]+$")},
                {"hint": text(), "min": {"type": "number"}},
            )
        ),
    },
)
# runtipi/runtipi, docs/dynamic-compose-system.md and packages/common/src/schemas/dynamic-compose.ts.
RUNTIPI_COMPOSE = shape(
    {
        "services": some(
            shape(
                {"name": text(), "image": text()},
                {
                    "isMain": YES_OR_NO,
                    "internalPort": PORT,
                    "command": some(text()),
                    "dependsOn": some(text()),
                    "user": text(pattern="^[0-9]+:[0-9]+$"),
                    "readOnly": YES_OR_NO,
                    "environment": {"type": "object", "additionalProperties": text()},
                    "volumes": some(shape({"hostPath": text(), "containerPath": text(pattern="^/")})),
                },
            )
        )
    },
    {"$schema": text()},
)

# frenck/action-addon-linter, src/config.schema.json. Its lint.py refuses a field with its default value,
# `watchdog`, and `webui` beside `ingress`.
HOME_ASSISTANT = shape(
    {
        "name": text(),
        "version": text(),
        "slug": text(pattern="^[a-z_]+$"),
        "description": text(),
        "arch": some(one_of("aarch64", "amd64")),
    },
    {
        "url": ADDRESS,
        "ingress": one_of(True),
        "ingress_port": PORT,
        "ingress_stream": one_of(True),
        "panel_icon": text(pattern="^mdi:[a-z-]+$"),
        "host_network": one_of(True),
        "backup": one_of("cold"),
        "tmpfs": one_of(True),
        "timeout": {"type": "integer"},
    },
)

# compose-spec/compose-spec, schema/compose-spec.json: the parts that a service of Snaplore uses.
SERVICE = shape(
    {"image": text()},
    {
        "build": text(),
        "command": some(text()),
        "container_name": text(),
        "user": text(),
        "restart": one_of("no", "always", "on-failure", "unless-stopped"),
        "stop_grace_period": text(pattern="^[0-9]+[sm]$"),
        "read_only": YES_OR_NO,
        "cap_drop": some(text()),
        "security_opt": some(text()),
        "network_mode": text(),
        "ports": some(shape({"target": PORT, "published": text(), "protocol": one_of("tcp")})),
        "volumes": some({"anyOf": [text(), shape({"type": text(), "source": text(), "target": text()})]}),
        "tmpfs": some(text()),
        "environment": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
        "healthcheck": shape({"test": some(text())}, {"interval": text(), "start_period": text()}),
        "depends_on": {
            "anyOf": [
                some(text()),
                {"type": "object", "additionalProperties": shape({"condition": one_of("service_healthy")})},
            ]
        },
        "mem_limit": text(pattern="^[0-9]+m$"),
    },
)


def read(place):
    return yaml.safe_load((CATALOGUES / place).read_text(encoding="utf-8"))


def services(compose):
    found = {name: service for name, service in compose["services"].items() if name != "app_proxy"}
    for service in found.values():
        jsonschema_rs.validate(SERVICE, service)
    return found


@pytest.mark.parametrize(
    ("place", "schema"),
    [
        ("umbrel/umbrel-app.yml", UMBREL),
        ("runtipi/config.json", RUNTIPI),
        ("runtipi/docker-compose.json", RUNTIPI_COMPOSE),
        ("home-assistant/config.yaml", HOME_ASSISTANT),
    ],
)
def test_a_catalogue_gets_what_it_asks_for_in_the_version_of_the_service(place, schema):
    found = read(place)
    jsonschema_rs.validate(schema, found)
    assert found.get("version", VERSION) == VERSION


@pytest.mark.parametrize("place", ["umbrel/docker-compose.yml", "casaos/docker-compose.yml", None])
def test_containers_have_no_privilege_a_read_only_root_and_one_data_folder(place):
    compose = read(place) if place else yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    found = services(compose)
    assert len(found) == 2
    for service in found.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["image"] == (IMAGE if place else "localhost/snaplore")
    assert len({str(service["volumes"]) for service in found.values()}) == 1
    assert [service.get("command") for service in found.values()] == [None, ["snaplore", "jobs", "schedule"]]


def test_casaos_opens_the_service_at_its_published_port():
    compose = read("casaos/docker-compose.yml")
    about = compose["x-casaos"]
    jsonschema_rs.validate(CASAOS, about)
    (port,) = compose["services"][about["main"]]["ports"]
    assert port["published"] == about["port_map"]
    assert about["version"] == VERSION


def test_umbrels_proxy_leads_to_the_service():
    proxy = read("umbrel/docker-compose.yml")["services"]["app_proxy"]["environment"]
    assert (proxy["APP_HOST"], proxy["APP_PORT"]) == ("snaplore_web_1", 8000)


def test_home_assistant_leads_to_the_port_on_which_the_add_on_listens():
    dockerfile = (CATALOGUES / "home-assistant/Dockerfile").read_text(encoding="utf-8")
    port = read("home-assistant/config.yaml")["ingress_port"]
    assert f"SNAPLORE_BIND=0.0.0.0:{port} " in dockerfile


def test_every_catalogue_names_one_image():
    named = {
        name
        for file in CATALOGUES.rglob("*")
        if file.is_file() and file.suffix not in (".png", ".jpg")
        for name in re.findall(r"registry\.example/snaplore:[0-9.]+", file.read_text(encoding="utf-8"))
    }
    assert named == {IMAGE}
    json.loads((CATALOGUES / "runtipi/config.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("shell", "script"), [("bash", "proxmox.sh"), ("sh", "home-assistant/run.sh")])
def test_scripts_are_read_by_their_shell(shell, script):
    subprocess.run([shell, "-n", CATALOGUES / script], check=True, timeout=60)


def test_the_proxmox_script_ends_before_it_changes_anything_where_there_is_no_proxmox(tmp_path):
    done = subprocess.run(
        [shutil.which("bash"), CATALOGUES / "proxmox.sh", tmp_path / "none.deb"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "no node of Proxmox VE" in done.stderr


def test_the_image_runs_without_root_checks_its_health_and_speaks_english():
    container = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"(?m)^USER 10001:10001$", container)
    assert re.search(r"(?m)^HEALTHCHECK .*deploy/healthy", container)
    assert "SNAPLORE_LANGUAGE=en" in container
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    languages = [one["environment"]["SNAPLORE_LANGUAGE"] for one in compose["services"].values()]
    assert set(languages) == {"${SNAPLORE_LANGUAGE:-en}"}
