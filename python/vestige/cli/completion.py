"""`vestige completion`: a script that completes commands, options, their values and trace files in a shell. The script
is made from the commands' own parsers, so it always fits them.
"""

from __future__ import annotations

import argparse

from . import PROGRAMS, SUMMARIES, parsers
from .console import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
  eval "$(vestige completion bash)"                 in ~/.bashrc
  vestige completion zsh > ~/.zfunc/_vestige        a folder of your fpath
  vestige completion fish > ~/.config/fish/completions/vestige.fish
"""
LIST = "LIST"  # metavar for several words separated by commas
FILES = ("FILE", "OUT", "A", "B", "T", "FOLDER", "PATH")  # metavars of files


def main(argv: list[str]) -> int:
    parser = Parser(
        "completion",
        "Print a script that completes commands, options and trace files in your shell.",
        "bash | zsh | fish",
        EXAMPLES,
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    options = parser.parse_args(argv)
    commands = list(find_commands())
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands), end="")
    return 0


class Option:
    """An option of a command, or an argument without an option (`names` is empty)."""

    def __init__(self, action: argparse.Action, words: dict[str, list[str]]) -> None:
        self.names = list(action.option_strings)
        self.takes = action.nargs != 0
        offered = [word for name in self.names for word in words.get(name, ())]
        self.choices = [str(choice) for choice in action.choices or offered]
        self.metavar = str(action.metavar or action.dest).split()[0]
        self.is_list = self.metavar == LIST and bool(self.choices)
        self.is_file = self.takes and not self.choices and self.metavar in FILES
        self.help = _text(action)


class Command:
    def __init__(self, name: str, parser: Parser, summary: str) -> None:
        self.words = name.split(" ")  # `et check` has two words
        self.name = name
        self.summary = summary
        options = [Option(action, parser.words) for action in parser._actions if action.help != argparse.SUPPRESS]
        self.options = [option for option in options if option.names]
        self.choices = [choice for option in options if not option.names for choice in option.choices]

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of files that the command takes without an option."""
        if self.name in PROGRAMS:
            return (".py",)
        return (".json", ".gz", ".vst") if self.words[0] == "et" else (".vst",)

    @property
    def flags(self) -> list[str]:
        return [name for option in self.options for name in option.names]

    @property
    def with_value(self) -> list[str]:
        return [name for option in self.options if option.takes for name in option.names]

    @property
    def with_file(self) -> list[str]:
        return [name for option in self.options if option.is_file for name in option.names]


def find_commands() -> Iterator[Command]:
    """Returns every command with the options and arguments that its parser takes."""
    for name, parser in parsers().items():
        yield Command(name, parser, SUMMARIES[name.partition(" ")[0]])


def _text(action: argparse.Action) -> str:
    text = (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
    return " ".join(text.split())


def _tops(commands: list[Command]) -> dict[str, str]:
    return {command.words[0]: command.summary for command in commands}


def _inner(commands: list[Command]) -> dict[str, str]:
    """Returns {command: its subcommands} for commands that have subcommands."""
    found: dict[str, list[str]] = {}
    for command in commands:
        if len(command.words) > 1:
            found.setdefault(command.words[0], []).append(command.words[1])
    return {top: " ".join(words) for top, words in found.items()}


# ---- bash ---------------------------------------------------------------------

BASH = """\
# bash completion of vestige; made by `vestige completion bash`
_vestige_files() {{
    local IFS=$'\\n' suffix
    COMPREPLY=($(compgen -d -- "$1"))
    for suffix in "${{@:2}}"; do
        COMPREPLY+=($(compgen -f -X "!*$suffix" -- "$1"))
    done
    compopt -o filenames 2>/dev/null
}}
_vestige_words() {{
    local IFS=$' \\t\\n'
    COMPREPLY=($(compgen -W "$2" -- "$1"))
}}
_vestige_list() {{
    local IFS=$' \\t\\n' before=""
    [[ $1 != *,* ]] || before=${{1%,*}},
    COMPREPLY=($(compgen -P "$before" -W "$2" -- "${{1##*,}}"))
    compopt -o nospace 2>/dev/null
}}
_vestige() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    local command=${{COMP_WORDS[1]}} options="" values="" files="" suffixes=(.vst) choices="" runs="" at word
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _vestige_words "$cur" "{tops} --help --version -V"
        return
    fi
    case $command in
{subcommands}    esac
    case $command in
{commands}    esac
    if [[ $runs ]]; then
        for ((at = 2; at < COMP_CWORD; at++)); do
            word=${{COMP_WORDS[at]}}
            if [[ " $values " == *" $word "* ]]; then
                ((at++))
            elif [[ $word != -* || $word == -m || $word == -c ]]; then
                _vestige_files "$cur" ""
                return
            fi
        done
    fi
    case "$command $prev" in
{choices}    esac
    if [[ " $files " == *" $prev "* ]]; then
        _vestige_files "$cur" ""
    elif [[ " $values " == *" $prev "* ]]; then
        :
    elif [[ $cur == -* ]]; then
        _vestige_words "$cur" "$options"
    elif [[ $choices ]]; then
        _vestige_words "$cur" "$choices"
    else
        _vestige_files "$cur" "${{suffixes[@]}}"
    fi
}}
complete -F _vestige vestige
"""


def bash(commands: list[Command]) -> str:
    subcommands = "".join(
        f"    {top})\n"
        f'        if ((COMP_CWORD == 2)); then _vestige_words "$cur" "{words} --help"; return; fi\n'
        f'        command="{top} ${{COMP_WORDS[2]}}" ;;\n'
        for top, words in _inner(commands).items()
    )
    bodies, choices = "", ""
    for command in commands:
        bodies += f"    '{command.name}')\n        options=\"{' '.join(command.flags)}\"\n"
        bodies += f'        values="{" ".join(command.with_value)}"\n'
        bodies += f'        files="{" ".join(command.with_file)}"\n'
        bodies += f'        suffixes=({" ".join(command.suffixes)}) choices="{" ".join(command.choices)}"'
        bodies += " runs=1 ;;\n" if command.name in PROGRAMS else " ;;\n"
        for option in command.options:
            if option.choices:
                cases = "|".join(f"'{command.name} {name}'" for name in option.names)
                offer = "_vestige_list" if option.is_list else "_vestige_words"
                choices += f'    {cases}) {offer} "$cur" "{" ".join(option.choices)}"; return ;;\n'
    return BASH.format(tops=" ".join(_tops(commands)), subcommands=subcommands, commands=bodies, choices=choices)


# ---- zsh ----------------------------------------------------------------------


def zsh(commands: list[Command]) -> str:
    tops = "\n".join(f"            {_zsh(f'{name}:{_escape(text)}')}" for name, text in _tops(commands).items())
    bodies = "".join(_zsh_command(command) for command in commands)
    inner = _inner(commands)
    return f"""\
#compdef vestige
# zsh completion of vestige; made by `vestige completion zsh`
_vestige() {{
    local curcontext=$curcontext command
    if (( CURRENT == 2 )); then
        local -a commands=(
{tops}
        )
        _describe command commands
        return
    fi
    shift words
    (( CURRENT-- ))
    command=$words[1]
    if [[ " {" ".join(inner)} " == *" $command "* ]]; then
        if (( CURRENT == 2 )); then
            _vestige_inner $command
            return
        fi
        shift words
        (( CURRENT-- ))
        command="$command $words[1]"
    fi
    case $command in
{bodies}    esac
}}
_vestige_inner() {{
    case $1 in
{_zsh_inner(commands)}    esac
}}
if [[ $funcstack[1] == _vestige ]]; then
    _vestige "$@"
else
    compdef _vestige vestige
fi
"""


def _zsh_inner(commands: list[Command]) -> str:
    return "".join(f"    {top}) compadd -- {words} ;;\n" for top, words in _inner(commands).items())


def _zsh_command(command: Command) -> str:
    specs = []
    for option in command.options:
        for name in option.names:
            spec = f"*{name}[{_escape(option.help)}]"
            words = " ".join(option.choices)
            if option.choices:
                spec += f":{option.metavar}:{f'_sequence compadd - {words}' if option.is_list else f'({words})'}"
            elif option.takes:
                spec += f":{option.metavar}:{'_files' if option.is_file else ' '}"
            specs.append(_zsh(spec))
    if command.name in PROGRAMS:
        specs += [_zsh('1:script:_files -g "*.py"'), _zsh("*::arguments:_files")]
    elif command.choices:
        specs.append(_zsh(f"1:choice:({' '.join(command.choices)})"))
    else:
        globs = " ".join(f"*{suffix}" for suffix in command.suffixes)
        specs.append(_zsh(f'*:file:_files -g "{globs}"'))
    joined = " \\\n            ".join(specs)
    return f"    '{command.name}')\n        _arguments -s -S \\\n            {joined} ;;\n"


def _zsh(text: str) -> str:
    """Quotes a text."""
    return "'" + text.replace("'", "'\\''") + "'"


def _escape(text: str) -> str:
    """Escapes characters that are special for _arguments and _describe."""
    return "".join("\\" + c if c in "[]:\\" else c for c in text)


# ---- fish ---------------------------------------------------------------------


def fish(commands: list[Command]) -> str:
    lines = ["# fish completion of vestige; made by `vestige completion fish`", "complete -c vestige -f"]
    first = "__fish_use_subcommand"
    inner = _inner(commands)
    for name, text in _tops(commands).items():
        lines.append(f"complete -c vestige -n {first} -a {name} -d {_fish(text)}")
    for command in commands:
        when = f"__fish_seen_subcommand_from {command.words[0]}"
        if len(command.words) > 1:
            lines.append(
                f"complete -c vestige"
                f" -n {_fish(f'{when}; and not __fish_seen_subcommand_from {inner[command.words[0]]}')}"
                f" -a {command.words[1]}"
            )
            when += f"; and __fish_seen_subcommand_from {command.words[1]}"
        for option in command.options:
            lines.append(f"complete -c vestige -n {_fish(when)} {_fish_option(option)} -d {_fish(option.help)}")
        if command.choices:
            lines.append(f"complete -c vestige -n {_fish(when)} -a {_fish(' '.join(command.choices))}")
        for suffix in () if command.choices else command.suffixes:
            lines.append(f"complete -c vestige -n {_fish(when)} -k -a '(__fish_complete_suffix {suffix})'")
    return "\n".join(lines) + "\n"


def _fish_option(option: Option) -> str:
    words = []
    for name in option.names:
        words.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
    if option.is_list:
        offer = f"(__fish_complete_list , 'printf %s\\n {' '.join(option.choices)}')"
        words.append(f"-x -a {_fish(offer)}")
    elif option.choices:
        words.append(f"-x -a {_fish(' '.join(option.choices))}")
    elif option.takes:
        words.append("-r -F" if option.is_file else "-x")
    return " ".join(words)


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
