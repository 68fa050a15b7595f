/* mot--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION mot" to load this file. \quit

-- ---------------------------------------------------------------- wrapper

CREATE FUNCTION mot_fdw_handler() RETURNS fdw_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION mot_fdw_validator(text[], oid) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FOREIGN DATA WRAPPER mot_fdw
    HANDLER mot_fdw_handler VALIDATOR mot_fdw_validator;

CREATE SERVER mot_server FOREIGN DATA WRAPPER mot_fdw;

GRANT USAGE ON FOREIGN SERVER mot_server TO PUBLIC;

-- ---------------------------------------------------------- access method

CREATE FUNCTION mot_am_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD mot TYPE INDEX HANDLER mot_am_handler;

-- ------------------------------------------------------- operator classes

-- ------------------------------------------------------------- monitoring

