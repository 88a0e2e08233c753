"""`termdp studies …`: studies in which people stop rides.

Each command is a module `termdp.cli.studies_<name>`.
"""

COMMANDS = {
    "create": "create a study, with rides and invite links",
    "list": "list the studies of a store",
    "rides": "add rides of trained agents to a study",
    "simulate": "let simulated passengers review the rides of a study",
    "export": "write the reviews of a study as a Parquet file",
    "import": "read an exported file into a store",
    "person": "write what is stored about one person",
    "forget": "take one person out of a study",
    "audit": "list what was done to a store, by whom and when",
    "backup": "write a whole store to one file, also while it is served",
    "restore": "read a backup into a new database",
    "fit": "fit an observer to the stops of a study",
    "improve": "let a driver learn from the stops of a study, round by round",
}
