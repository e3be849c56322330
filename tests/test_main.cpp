#define CATCH_CONFIG_MAIN
#include "dlc_test/catch.h"
