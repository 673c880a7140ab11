"""Where a module is tested: `photos.py` in `tests/test_photos.py`, and likewise in every folder. This table
has those that have no file of their own name, and a folder's row is for the rest of it.
"""

from settings import ROOT

TESTED = {
    "analysis": "test_analysis.py",
    "analysis/text_reader.py": "test_readings.py",
    "assistant": "test_chat.py",
    "assistant/mcp_messages.py": "test_mcp.py",
    "assistant/mcp_servers.py": "test_mcp.py",
    "claims.py": "test_analysis.py",
    "commands": "test_jobs.py",
    "deploy": "test_release.py",
    "release": "test_release.py",
    "colours.py": "test_heif.py",
    "curation": "test_histories.py",
    "curation/opened.py": "test_searches.py",
    "curation/originals.py": "test_amounts.py",
    "curation/news.py": "test_threads.py",
    "curation/proposals.py": "test_records.py",
    "curation/retention.py": "test_keeping.py",
    "database.py": "test_models.py",
    "disk.py": "test_crypto.py",
    "devices.py": "test_photos.py",
    "engines": "test_llm.py",
    "engines/child.py": "test_embedded.py",
    "engines/completions.py": "test_remote.py",
    "engines/embedding.py": "test_meaning.py",
    "engines/vectors.py": "test_embeddings.py",
    "errors.py": "test_app.py",
    "gunicorn.conf.py": "test_service.py",
    "lexicon.py": "test_search.py",
    "loops.py": "test_workers.py",
    "outlets/atom.py": "test_feeds.py",
    "outlets/ics.py": "test_feeds.py",
    "outlets/linked.py": "test_tabular.py",
    "outlets/mcp_shapes.py": "test_mcp_server.py",
    "outlets/mcp_tools.py": "test_mcp_server.py",
    "queries": "test_operators.py",
    "queries/candidates.py": "test_search.py",
    "queries/wording.py": "test_search.py",
    "reasoner.py": "test_dynamics.py",
    "rules": "test_rules.py",
    "rules/accounts.py": "test_sensitive.py",
    "rules/apps.py": "test_search.py",
    "rules/checks.py": "test_sensitive.py",
    "rules/disguises.py": "test_gate.py",
    "rules/days.py": "test_occasions.py",
    "rules/holdings.py": "test_amounts.py",
    "rules/identity.py": "test_sensitive.py",
    "rules/keys.py": "test_sensitive.py",
    "rules/likeness.py": "test_stacks.py",
    "rules/onetime.py": "test_sensitive.py",
    "rules/passwords.py": "test_sensitive.py",
    "rules/phrases.py": "test_sensitive.py",
    "rules/bookings.py": "test_recorder.py",
    "rules/timetables.py": "test_occasions.py",
    "rules/valued.py": "test_entities.py",
    "rules/planned.py": "test_occasions.py",
    "rules/cards.py": "test_recorder.py",
    "rules/balances.py": "test_recorder.py",
    "rules/money.py": "test_recorder.py",
    "rules/lessons.py": "test_records.py",
    "rules/parcels.py": "test_recorder.py",
    "rules/subjects.py": "test_recorder.py",
    "rules/totals.py": "test_tabular.py",
    "rules/travel.py": "test_recorder.py",
    "rules/questions.py": "test_replies.py",
    "spool.py": "test_photos.py",
    "rules/statements.py": "test_memory.py",
    "tallies.py": "test_photos.py",
    "terminal": "test_client.py",
    "tls": "test_certificates.py",
    "uploads.py": "test_photos.py",
    "upkeep": "test_backup.py",
    "upkeep/clocks.py": "test_jobs.py",
    "upkeep/dates.py": "test_taken.py",
    "upkeep/export.py": "test_amounts.py",
    "upkeep/importing.py": "test_jobs.py",
    "upkeep/moving.py": "test_away.py",
    "upkeep/offsite.py": "test_away.py",
    "upkeep/resealing.py": "test_rotation.py",
    "vocabulary.py": "test_search.py",
    "web": "test_app.py",
    "web/examples.py": "test_openapi.py",
    "web/installable.py": "test_dashboard_installed.py",
}
NO_MODULES = {"benchmarks", "data", "docs", "migrations", "tests"}


def modules():
    """Every Python file of the service, by its path in the project."""
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
    return {
        str(path)
        for path in found
        if path.name != "__init__.py" and path.parts[0] not in NO_MODULES and path.parts[0][0] != "."
    }


def has_its_own(module):
    return (ROOT / "tests" / f"test_{module.rpartition('/')[2]}").exists()


def test_every_module_has_a_file_of_tests():
    missing = {
        module
        for module in modules()
        if not has_its_own(module) and module not in TESTED and module.partition("/")[0] not in TESTED
    }
    assert missing == set(), "add rows to TESTED that say which file tests them"


def test_the_table_names_what_is_there_and_no_module_with_its_own_file():
    there = modules() | {module.partition("/")[0] for module in modules() if "/" in module}
    assert set(TESTED) <= there
    assert [module for module in TESTED if module.endswith(".py") and has_its_own(module)] == []
    assert [name for name in TESTED.values() if not (ROOT / "tests" / name).exists()] == []
