/* The compiler reads this header once instead of in every file: Python's
 * headers take half of the time in which a file compiles. Meson wants such a
 * header in a folder of its own. */
#include "vpy.h"
