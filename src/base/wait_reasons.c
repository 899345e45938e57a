/* The table behind wait_reasons.h: functions that wait, and the reasons. Any
 * thread. */
#include <string.h>

#include <vestige/span.h>

#include "base/wait_reasons.h"

#define FUNCTION "<built-in function "
#define METHOD "<built-in method "
#define OF " of "
#define OBJECT " object>"
#define CLASS "type" /* called on the class, which is the definition's file */
#define PYTHON ".py"

/* Names, each followed by a space. `owner` is the type of a method's object, ""
 * for a function in C, or the end of the path of a Python function's file. */
static const struct {
    vst_wait_reason reason;
    const char *owner;
    const char *names;
} table[] = {
    {VST_WAIT_SLEEP, "",
     "sleep clock_nanosleep pause sigwait sigwaitinfo sigtimedwait "},
    {VST_WAIT_IO, "",
     "select poll getaddrinfo gethostbyname gethostbyaddr input read readv "
     "pread preadv fsync fdatasync tcdrain zmq_poll "},
    {VST_WAIT_IO, "", "wait_c "}, /* psycopg waits for the database */
    /* _shutdown is the method of _thread that waits for threads that still
     * run. */
    {VST_WAIT_LOCK, "", "acquire_lock flock lockf _shutdown "},
    {VST_WAIT_CHILD, "", "wait waitpid waitid wait3 wait4 "},
    {VST_WAIT_SPIN, "", "sched_yield "},
    {VST_WAIT_LOCK, "_thread.lock", "acquire acquire_lock __enter__ "},
    {VST_WAIT_LOCK, "_thread.RLock", "acquire __enter__ "},
    {VST_WAIT_LOCK, "_thread._ThreadHandle", "join "},
    {VST_WAIT_LOCK, "_multiprocessing.SemLock", "acquire __enter__ "},
    {VST_WAIT_LOCK, "_queue.SimpleQueue", "get "},
    {VST_WAIT_IO, "select.poll", "poll "},
    {VST_WAIT_IO, "select.epoll", "poll "},
    {VST_WAIT_IO, "select.devpoll", "poll "},
    {VST_WAIT_IO, "select.kqueue", "control "},
    {VST_WAIT_IO, "_socket.socket",
     "accept _accept connect connect_ex recv recv_into recvfrom recvfrom_into "
     "recvmsg recvmsg_into "},
    {VST_WAIT_IO, "_ssl._SSLSocket", "do_handshake read "},
    {VST_WAIT_IO, "QApplication", "exec exec_ "},
    {VST_WAIT_IO, "QGuiApplication", "exec exec_ "},
    {VST_WAIT_IO, "QCoreApplication", "exec exec_ "},
    {VST_WAIT_IO, "QEventLoop", "exec exec_ "},
    {VST_WAIT_IO, "PySide6.QtWidgets.QApplication", "exec exec_ "},
    {VST_WAIT_IO, "PySide6.QtGui.QGuiApplication", "exec exec_ "},
    {VST_WAIT_IO, "PySide6.QtCore.QCoreApplication", "exec exec_ "},
    {VST_WAIT_IO, "PySide6.QtCore.QEventLoop", "exec exec_ "},
    {VST_WAIT_SLEEP, "pygame.time.Clock", "tick "},
    {VST_WAIT_IO, "zmq.backend.cython._zmq.Socket", "recv recv_into "},
    {VST_WAIT_IO, "grpc._cython.cygrpc.CompletionQueue",
     "poll _internal_poll "},
    {VST_WAIT_IO, "grpc._cython.cygrpc.SegregatedCall", "next_event "},
    {VST_WAIT_IO, "grpc._cython.cygrpc.Channel",
     "next_call_event watch_connectivity_state "},
    {VST_WAIT_IO, "uvloop.loop.Loop", "run_forever run_until_complete "},
    {VST_WAIT_IO, "gevent.libev.corecext.loop", "run "},
    {VST_WAIT_IO, "gevent/libuv/loop.py", "loop.run "},
    /* Python functions that wait in C. Used if the call in C was not recorded:
     * it was open before an attach, or C functions are left out. */
    {VST_WAIT_IO, "asyncio/runners.py", "Runner.run run "},
    {VST_WAIT_IO, "uvicorn/_compat.py", "asyncio_run "},
    {VST_WAIT_IO, "/selectors.py",
     "SelectSelector.select _PollLikeSelector.select EpollSelector.select "
     "KqueueSelector.select DevpollSelector.select "},
    {VST_WAIT_IO, "/socket.py", "socket.accept SocketIO.readinto "},
    {VST_WAIT_IO, "multiprocessing/connection.py",
     "Connection._recv SocketListener.accept "},
    {VST_WAIT_IO, "zmq/sugar/poll.py", "Poller.poll "},
    {VST_WAIT_IO, "zmq/sugar/socket.py", "Socket.poll Socket.recv_multipart "},
    {VST_WAIT_IO, "grpc/_server.py", "_serve "},
    {VST_WAIT_LOCK, "/threading.py",
     "Condition.wait Thread.join Thread._wait_for_tstate_lock _shutdown "},
    {VST_WAIT_CHILD, "/subprocess.py", "Popen._try_wait Popen._wait "},
    {VST_WAIT_CHILD, "multiprocessing/popen_fork.py", "Popen.poll "},
    {VST_WAIT_SPIN, "vllm/distributed/utils.py", "sched_yield "},
    {VST_WAIT_SPIN, "device_communicators/shm_broadcast.py",
     "memory_fence SpinTimer.spin SpinSleepTimer.spin "
     "MessageQueue.acquire_read MessageQueue.acquire_write "},
};

/* Event loops in C, which call functions of the program. */
static const char *const loops[] = {
    "uvloop.loop.Loop",
    "gevent.libev.corecext.loop",
    "QApplication",
    "QGuiApplication",
    "QCoreApplication",
    "QEventLoop",
    "PySide6.QtWidgets.QApplication",
    "PySide6.QtGui.QGuiApplication",
    "PySide6.QtCore.QCoreApplication",
    "PySide6.QtCore.QEventLoop",
};

const char *vst_wait_reason_name(uint32_t reason)
{
    static const char *const names[VST_WAIT_REASONS] = {
        [VST_WAIT_NONE] = "",       [VST_WAIT_GIL] = "gil",
        [VST_WAIT_LOCK] = "lock",   [VST_WAIT_IO] = "io",
        [VST_WAIT_SLEEP] = "sleep", [VST_WAIT_CHILD] = "child",
        [VST_WAIT_WORLD] = "world", [VST_WAIT_OBJECT] = "object",
        [VST_WAIT_SPIN] = "spin",
    };

    return reason < VST_WAIT_REASONS ? names[reason] : "";
}

/* A part of a name, without a terminating NUL. */
typedef struct piece {
    const char *at;
    size_t length;
} piece;

static bool take_start(piece *text, const char *start)
{
    size_t length = strlen(start);

    if (text->length < length || memcmp(text->at, start, length) != 0)
        return false;
    text->at += length;
    text->length -= length;
    return true;
}

static bool take_end(piece *text, const char *end)
{
    size_t length = strlen(end);

    if (text->length < length ||
        memcmp(text->at + text->length - length, end, length) != 0)
        return false;
    text->length -= length;
    return true;
}

/* Splits a name at " of " into name and owner. Returns whether " of " was
 * there. */
static bool reason_split(piece *name, piece *owner)
{
    for (size_t i = 0; i + strlen(OF) <= name->length; i++)
        if (memcmp(name->at + i, OF, strlen(OF)) == 0) {
            owner->at = name->at + i + strlen(OF);
            owner->length = name->length - i - strlen(OF);
            name->length = i;
            return true;
        }
    return false;
}

static bool is_equal(const piece *text, const char *other)
{
    return strlen(other) == text->length &&
           memcmp(text->at, other, text->length) == 0;
}

static bool is_same(const piece *a, const piece *b)
{
    return a->length == b->length && memcmp(a->at, b->at, a->length) == 0;
}

static bool ends_with(const piece *text, const piece *end)
{
    piece rest = *text;

    if (rest.length > end->length) {
        rest.at += rest.length - end->length;
        rest.length = end->length;
    }
    return is_same(&rest, end);
}

/* Takes the part of a text up to the next separator, or to its end. */
static piece take_part(piece *text, char separator)
{
    const char *stop = memchr(text->at, separator, text->length);
    size_t length = stop != NULL ? (size_t)(stop - text->at) : text->length;
    piece part = {text->at, length};

    length += stop != NULL;
    text->at += length;
    text->length -= length;
    return part;
}

static bool is_among(const piece *name, const char *names)
{
    piece left = {names, strlen(names)};

    while (left.length != 0) {
        piece one = take_part(&left, ' ');

        if (is_same(&one, name))
            return true;
    }
    return false;
}

/* The names of a function, in the form that the table uses. */
typedef struct waiting_function {
    piece owner, name;
    bool is_python;
} waiting_function;

static bool reason_describe(const vst_definition *d, waiting_function *function)
{
    *function =
        (waiting_function){.owner = {"", 0}, .name = {d->name, d->name_len}};
    if (d->kind == VST_DEF_PYTHON) {
        function->is_python = true;
        function->owner = (piece){d->file, d->file_len};
        return true;
    }
    if (d->kind != VST_DEF_NATIVE)
        return false;
    if (take_start(&function->name, METHOD)) {
        if (!take_end(&function->name, OBJECT) ||
            !reason_split(&function->name, &function->owner))
            return false;
        if (is_equal(&function->owner, CLASS))
            function->owner = (piece){d->file, d->file_len};
        return function->owner.length != 0;
    }
    return take_start(&function->name, FUNCTION) &&
           take_end(&function->name, ">");
}

static bool is_owner(const waiting_function *function, const piece *owner)
{
    static const piece python = {PYTHON, sizeof PYTHON - 1};

    if (ends_with(owner, &python) != function->is_python)
        return false;
    return function->is_python ? ends_with(&function->owner, owner)
                               : is_same(&function->owner, owner);
}

static vst_wait_reason reason_named(const piece *name)
{
    for (uint32_t i = VST_WAIT_LOCK; i < VST_WAIT_REASONS; i++)
        if (!vst__wait_is_of_language(i) &&
            is_equal(name, vst_wait_reason_name(i)))
            return (vst_wait_reason)i;
    return VST_WAIT_NONE;
}

/* Searches the entries of a project; ignores invalid entries. */
static vst_wait_reason reason_of_project(const waiting_function *function,
                                         piece more)
{
    while (more.length != 0) {
        piece entry = take_part(&more, ';');
        piece reason = take_part(&entry, ' '), owner = take_part(&entry, ' ');
        piece name = entry;

        if (name.length == 0) { /* a function in C */
            name = owner;
            owner.length = 0;
        }
        if (is_same(&name, &function->name) && is_owner(function, &owner))
            return reason_named(&reason);
    }
    return VST_WAIT_NONE;
}

static vst_wait_reason reason_of_table(const waiting_function *function)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        piece owner = {table[i].owner, strlen(table[i].owner)};

        if (is_owner(function, &owner) &&
            is_among(&function->name, table[i].names))
            return table[i].reason;
    }
    return VST_WAIT_NONE;
}

vst__waiter vst__waiter_of(const vst_definition *d, const char *more,
                           size_t more_length)
{
    vst__waiter found = {.reason = VST_WAIT_NONE};
    waiting_function function;

    if (!reason_describe(d, &function))
        return found;
    if (more_length != 0)
        found.reason = reason_of_project(&function, (piece){more, more_length});
    if (found.reason == VST_WAIT_NONE)
        found.reason = reason_of_table(&function);
    found.is_around = function.is_python;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        found.is_around |=
            !function.is_python && is_equal(&function.owner, loops[i]);
    return found;
}
