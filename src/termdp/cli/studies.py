"""`termdp studies …`: manage studies of recorded rides and people's stops.

Each command is a module `termdp.cli.studies_<name>`.
"""

COMMANDS = {
    "create": "create a study with rides and invite links",
    "list": "list the studies in a store",
    "rides": "add rides by trained agents to a study",
    "simulate": "let simulated passengers review the rides of a study",
    "export": "export the reviews of a study to a Parquet file",
    "import": "import an exported study into a store",
    "person": "write out everything stored about one person",
    "forget": "remove one person from a study",
    "audit": "list what was done to a store, by whom and when",
    "backup": "copy a whole store to one file, even while it is being served",
    "restore": "restore a backup to a new database",
    "fit": "fit an observer to the stops of a study",
    "improve": "let a driver learn from the stops of a study, round by round",
}
