import os
import sys

from django.core.management import execute_from_command_line

sys.dont_write_bytecode = True
os.environ["DJANGO_SETTINGS_MODULE"] = "site_.settings"
execute_from_command_line(sys.argv)
