/* An empty library that links libunwind, so that auditwheel puts libunwind into
 * wheels (see meson.build). A C file has to declare something. */
typedef int vpy_nothing;
