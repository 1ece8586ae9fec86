//! JSON, read where it stands: see `json.h`.

#include "json.h"

#include <stdlib.h>
#include <string.h>

static const json_t NOTHING = { NULL, 0 };

static const char *blank(const char *at, const char *end) {
    while (at < end && strchr(" \t\r\n", *at)) at++;
    return at;
}

/// Where the string that begins here ends.
static const char *past_string(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++) {
        if (*at == '\\') at++;
    }
    return at < end ? at + 1 : end;
}

/// Where the value that begins here ends.
static const char *past_value(const char *at, const char *end) {
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = past_string(at, end);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
            continue;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0) return at;
            depth--;
            at++;
        } else if (depth == 0) {
            while (at < end && !strchr(",]} \t\r\n", *at)) at++;
        } else {
            at++;
            continue;
        }
        if (depth == 0) return at;
    }
    return end;
}

json_t json_of(const void *text, size_t len) {
    const char *end = (const char *)text + len;
    const char *at = blank(text, end);
    return (json_t){ at, (size_t)(past_value(at, end) - at) };
}

json_type_t json_type(json_t value) {
    if (!value.at || value.len == 0) return JSON_NOTHING;
    switch (*value.at) {
        case 'n': return JSON_NULL;
        case 't':
        case 'f': return JSON_BOOL;
        case '"': return JSON_STRING;
        case '[': return JSON_LIST;
        case '{': return JSON_OBJECT;
        default: break;
    }
    for (size_t i = 0; i < value.len; i++) {
        if (strchr(".eE", value.at[i])) return JSON_NUMBER;
    }
    return JSON_INTEGER;
}

json_t json_field(json_t object, const char *name) {
    if (json_type(object) != JSON_OBJECT) return NOTHING;
    const char *end = object.at + object.len;
    const char *at = blank(object.at + 1, end);
    while (at < end && *at == '"') {
        const char *key = at + 1;
        at = past_string(at, end);
        size_t len = (size_t)(at - key) - 1;
        const char *value = blank(blank(at, end) + 1, end);
        at = past_value(value, end);
        if (len == strlen(name) && memcmp(key, name, len) == 0) return (json_t){ value, (size_t)(at - value) };
        at = blank(at, end);
        if (at < end && *at == ',') at = blank(at + 1, end);
    }
    return NOTHING;
}

bool json_is_empty(json_t value) {
    const char *end = value.at + value.len;
    return blank(value.at + 1, end) >= end - 1;
}

bool json_is_true(json_t value) {
    return json_type(value) == JSON_BOOL && *value.at == 't';
}

int64_t json_integer(json_t value) {
    // What follows the value in its text is no digit.
    return json_type(value) == JSON_INTEGER ? strtoll(value.at, NULL, 10) : 0;
}
