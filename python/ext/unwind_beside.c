/* Nothing: what counts is that the library made of it needs libunwind
 * (meson.build says why). A file of C has to declare something. */
typedef int vpy_nothing;
