// A library with C++ names and an inlined call, loaded and unloaded by the
// tests of tracebacks: plugin_enter() calls back from three functions deep.
namespace demo
{

template <class T> struct Box {
    T value;

    __attribute__((noinline)) int call(int (*back)(void *), void *ctx)
    {
        int result = back(ctx); // the line of the call
        __asm__ volatile("" ::: "memory");
        return result + value;
    }
};

inline __attribute__((always_inline)) int
through(Box<int> &box, int (*back)(void *), void *ctx)
{
    int result = box.call(back, ctx); // the line of the inlined call
    __asm__ volatile("" ::: "memory");
    return result;
}

} // namespace demo

extern "C" __attribute__((visibility("default"))) int
plugin_enter(int (*back)(void *), void *ctx)
{
    demo::Box<int> *box = new demo::Box<int>{1}; // allocated by the C++ runtime
    int result = through(*box, back, ctx);       // the line of the entry
    delete box;
    return result;
}

// A function that the program may define; called while the library is loaded.
extern "C" __attribute__((weak)) void plugin_constructs(void);

__attribute__((constructor)) static void construct(void)
{
    if (plugin_constructs != nullptr)
        plugin_constructs();
}
