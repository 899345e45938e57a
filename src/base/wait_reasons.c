/* The table behind wait_reasons.h: functions that only wait, and the reasons.
 * Any thread. */
#include <string.h>

#include <vestige/span.h>

#include "base/wait_reasons.h"

#define FUNCTION "<built-in function "
#define METHOD "<built-in method "
#define OF " of "
#define OBJECT " object>"

/* Names, each followed by a space. `owner` is the type of a method's object, ""
 * for a function. */
static const struct {
    vst_wait_reason reason;
    const char *owner;
    const char *names;
} table[] = {
    {VST_WAIT_SLEEP, "",
     "sleep clock_nanosleep pause sigwait sigwaitinfo sigtimedwait "},
    {VST_WAIT_IO, "",
     "select poll getaddrinfo gethostbyname gethostbyaddr input read readv "
     "pread preadv fsync fdatasync tcdrain "},
    /* _shutdown is the method of _thread that waits for threads that still
     * run. */
    {VST_WAIT_LOCK, "", "acquire_lock flock lockf _shutdown "},
    {VST_WAIT_CHILD, "", "wait waitpid waitid wait3 wait4 "},
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
};

const char *vst_wait_reason_name(uint32_t reason)
{
    static const char *const names[VST_WAIT_REASONS] = {
        [VST_WAIT_NONE] = "",       [VST_WAIT_GIL] = "gil",
        [VST_WAIT_LOCK] = "lock",   [VST_WAIT_IO] = "io",
        [VST_WAIT_SLEEP] = "sleep", [VST_WAIT_CHILD] = "child",
        [VST_WAIT_WORLD] = "world", [VST_WAIT_OBJECT] = "object",
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

static bool is_among(const piece *name, const char *names)
{
    while (*names != '\0') {
        size_t length = (size_t)(strchr(names, ' ') - names);

        if (length == name->length && memcmp(names, name->at, length) == 0)
            return true;
        names += length + 1;
    }
    return false;
}

vst_wait_reason vst__wait_reason_of(const char *name, size_t length)
{
    piece function = {name, length}, owner = {"", 0};

    if (take_start(&function, METHOD)) {
        if (!take_end(&function, OBJECT) || !reason_split(&function, &owner) ||
            owner.length == 0)
            return VST_WAIT_NONE;
    } else if (!take_start(&function, FUNCTION) || !take_end(&function, ">")) {
        return VST_WAIT_NONE;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (is_equal(&owner, table[i].owner) &&
            is_among(&function, table[i].names))
            return table[i].reason;
    return VST_WAIT_NONE;
}
