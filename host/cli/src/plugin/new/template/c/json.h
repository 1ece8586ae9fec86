//! JSON, read where it stands: the host passes texts that are valid, so nothing is checked and nothing is copied.
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A value in a text. Nothing is there if `at` is null.
typedef struct {
    const char *at;
    size_t len;
} json_t;

typedef enum { JSON_NOTHING, JSON_NULL, JSON_BOOL, JSON_INTEGER, JSON_NUMBER, JSON_STRING, JSON_LIST, JSON_OBJECT } json_type_t;

/// The value that a whole text is.
json_t json_of(const void *text, size_t len);

json_type_t json_type(json_t value);

/// The field of an object. Names with escapes in them are not found.
json_t json_field(json_t object, const char *name);

/// Whether a list or an object has nothing in it.
bool json_is_empty(json_t value);

/// The value of a boolean.
bool json_is_true(json_t value);

/// The value of an integer, or the nearest that there is.
int64_t json_integer(json_t value);

#endif
